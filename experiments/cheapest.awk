# cheapest.awk -- the cheapest point of a capacity plan for each wanted rate, at the prices given.
#   awk -f experiments/cheapest.awk -v dram=4 -v flash=10 -v want=5,10,20 experiments/results/e10.csv
# dram is a price a GiB of memory, flash a price a GB/s of drive; columns are found by name.
BEGIN { FS = "," ; n = split(want, rate, ",") }
NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
{
    memory = $column["dram.capacity"] + 0
    drive = $column["storage.0.bandwidth"] + 0
    cost = dram * memory + flash * drive
    for (i = 1; i <= n; i++)
        if ($column["decode_tok_per_s"] + 0 >= rate[i] && (!(i in best) || cost < best[i])) {
            best[i] = cost
            what[i] = memory " GiB, " drive " GB/s, " $column["decode_tok_per_s"] " tok/s"
        }
}
END {
    for (i = 1; i <= n; i++)
        print rate[i] " tok/s: " ((i in best) ? best[i] " for " what[i] : "no point reaches it")
}
