//! Checkpoints with criu, for programs without checkpoints of their own: the meaning of `--checkpoint-command criu`.
//!
//! The images of a rank are below its working directory. If criu does not work here, the error is one line.

/// Commands for sh.
pub(super) const CHECKPOINT: &str = r#"command -v criu >/dev/null || { echo "criu is not installed" >&2; exit 1; }
lacks=$(criu check 2>&1) || { echo "criu cannot take checkpoints here: $(echo "$lacks" | tail -n 1)" >&2; exit 1; }
images="phalanx-$PHALANX_CHECKPOINT.$PHALANX_RANK"
rm -rf -- "$images" && mkdir -p -- "$images" &&
exec criu dump --tree "$PHALANX_PID" --images-dir "$images" --shell-job --leave-running"#;

pub(super) const RESTART: &str =
    r#"exec criu restore --images-dir "phalanx-$PHALANX_RESTART_FROM.$PHALANX_RANK" --shell-job"#;
