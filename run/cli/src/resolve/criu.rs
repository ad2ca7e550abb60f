//! Checkpoints with criu, of programs that know nothing of them: what `--checkpoint-command criu` stands for.
//!
//! The images of a rank are below its working directory. What criu lacks here, it says in one line.

/// A shell's commands.
pub(super) const CHECKPOINT: &str = r#"command -v criu >/dev/null || { echo "criu is not installed" >&2; exit 1; }
lacks=$(criu check 2>&1) || { echo "criu cannot take checkpoints here: $(echo "$lacks" | tail -n 1)" >&2; exit 1; }
images="phalanx-$PHALANX_CHECKPOINT.$PHALANX_RANK"
rm -rf -- "$images" && mkdir -p -- "$images" &&
exec criu dump --tree "$PHALANX_PID" --images-dir "$images" --shell-job --leave-running"#;

pub(super) const RESTART: &str =
    r#"exec criu restore --images-dir "phalanx-$PHALANX_RESTART_FROM.$PHALANX_RANK" --shell-job"#;
