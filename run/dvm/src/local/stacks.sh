# Prints the stacks of the process PHALANX_PID and of its descendants. A line '=process NAME' begins each of them.
family() {
    [ "$count" -lt 32 ] && [ -d "/proc/$1" ] || return
    count=$((count + 1))
    echo "=process $(cat "/proc/$1/comm")"
    stacks "$1" </dev/null
    for child in $(cat "/proc/$1/task/"*/children); do family "$child"; done
}
stacks() {
    case $(readlink "/proc/$1/exe") in
        */python*) if [ -n "$pyspy" ]; then "$pyspy" dump --nonblocking --pid "$1"; return; fi ;;
    esac
    if [ -n "$eustack" ]; then
        "$eustack" -m -p "$1"
    elif [ -n "$gdb" ]; then
        "$gdb" -nx -batch -iex 'set auto-load off' -iex 'set debuginfod enabled off' -p "$1" -ex 'thread apply all backtrace'
    else
        echo "neither eu-stack (of elfutils) nor gdb is in PATH" >&2
    fi
}
eustack=$(command -v eu-stack)
gdb=$(command -v gdb)
pyspy=$(command -v py-spy)
count=0
family "$PHALANX_PID"
exit 0
