#!/bin/sh
# rerun.sh [--check] [eNN...] -- runs the experiments (all, or those named) and writes their results; with --check it writes
# nothing and says which results are no longer what the program gives. Those whose traces are not here are passed over.
cd "$(dirname "$0")/.." || exit 1
check=
[ "$1" = --check ] && { check=1; shift; }
program=${MEMWALL:-./memwall}
new=$(mktemp /tmp/memwall-rerun-XXXXXX)
trap 'rm -f "$new" "$new.journal"' EXIT
changed=0
for experiment in experiments/e[0-9]*.yaml; do
    name=$(basename "$experiment" | cut -d- -f1)
    case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
    trace=$(sed -n 's/.*trace: \([^},]*\).*/\1/p' "$experiment" | head -n 1)
    [ -z "$trace" ] || [ -e "$trace" ] || { echo "$name: $trace is not here"; continue; }
    "$program" sweep "$experiment" --out "$new" 2>/dev/null || { echo "$name: failed"; exit 1; }
    if cmp -s "$new" "experiments/results/$name.csv"; then
        echo "$name: as committed"
    else
        echo "$name: changed"
        changed=1
        [ -n "$check" ] || cat "$new" >"experiments/results/$name.csv"
    fi
done
[ -z "$check" ] || exit $changed
