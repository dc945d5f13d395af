#!/bin/sh
# figures.sh [OUT-FOLDER] -- draws every committed figure from committed data: one of each experiment that has results, and
# those below. `make plots` runs it; the figures are the same bytes with the same gnuplot.
cd "$(dirname "$0")/.." || exit 1
out=${1:-plots/figures}
mkdir -p "$out" || exit 1
program=${MEMWALL:-./memwall}
draw() { "$program" plot "$@" || exit 1; }

for experiment in experiments/e[0-9]*.yaml; do
    name=$(basename "$experiment" | cut -d- -f1)
    [ -e "experiments/results/$name.csv" ] && draw "$experiment" --out "$out/$name.svg"
done
draw experiments/e05-prefetch-arbitrage.yaml --kind contour --where prefetch_when=ordered --levels 0.5,0.75,1,1.25 \
    --out "$out/e05-gain.svg" \
    --title "What reading ahead gives, against not doing it: below the line of 1 it costs, down to a third of the rate"
draw plots/data/mrc-demo.csv --out "$out/mrc-demo.svg" \
    --title "The bundled trace: LRU needs about twice the cache of Belady for the same misses"
draw plots/data/tornado-phone.csv --kind tornado --out "$out/tornado-phone.svg" \
    --title "What would help Qwen3-30B on a phone with 6 GiB: perfect prefetch and faster compute before faster flash"
draw plots/data/roofline-phone.csv --kind roofline --out "$out/roofline-phone.svg" \
    --title "A 400B model on a phone of 2.5 GB/s flash: every run stands just under the storage roof, far below that of memory"
draw plots/data/timeline-phone.json --out "$out/timeline-phone.svg" \
    --title "One token of Qwen3-30B on a phone: the processor waits for reads in most of its 48 layers"
draw plots/data/published.csv --where metric=decode_rate --by class --out "$out/predicted-published.svg" \
    --title "Published decode rates against predictions: blind, with published hit ratios, with published times"
draw plots/data/published.csv --kind quantiles --where metric=decode_rate --by class --out "$out/quantiles-published.svg" \
    --title "Half of the blind predictions of decode rates are within 26 % of what was published, given published times 1.5 %"
