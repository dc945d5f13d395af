# The include table: folder -> folders it may include besides itself.
BEGIN {
    may["base"] = ""
    may["models"] = may["devices"] = may["sim/core"] = "base"
    may["sim/policy"] = may["sim/trace"] = "base models"
    may["sim/roofline"] = "base models devices"
    may["sim/replay"] = "base models sim/policy sim/trace"
    all_sim = "sim/core sim/policy sim/trace sim/roofline sim/replay sim/plan sim/pipeline"
    may["sim/plan"] = may["sim/pipeline"] = "base models devices " all_sim
    may["kernels"] = "base models sim/policy sim/trace"
    may["validate"] = "base models devices kernels experiments " all_sim
    may["experiments"] = "base models devices " all_sim
    may["cli"] = "base models devices kernels validate experiments " all_sim
}
function folder(path,   p) {
    p = path
    sub(/\/[^\/]*$/, "", p)
    if (p ~ /^kernels/) return "kernels"
    return p
}
FNR == 1 {
    stem = FILENAME
    sub(/.*\//, "", stem)
    if (stem in where) { print FILENAME ": stem occurs twice, also " where[stem]; bad = 1 }
    where[stem] = FILENAME
    own = FILENAME
    sub(/\.c$/, ".h", own)
    has_own = FILENAME ~ /\.c$/ && (getline line < own) >= 0
    close(own)
    first = 1
}
/^#include "/ {
    split($0, part, "\"")
    from = folder(FILENAME)
    to = folder(part[2])
    if (!(from in may)) { print FILENAME ": folder " from " is not in the include table"; bad = 1 }
    else if (to != from && index(" " may[from] " ", " " to " ") == 0) {
        print FILENAME ":" FNR ": " from " may not include " to " (" part[2] ")"
        bad = 1
    }
    if (first && has_own && part[2] != own) { print FILENAME ":" FNR ": own header must come first"; bad = 1 }
    first = 0
}
END { exit bad }
