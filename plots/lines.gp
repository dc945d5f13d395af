# lines.gp -- y against x, one curve a value of `by`; bars where the data bring an interval.
if (logs ne "y" && logs ne "xy") { set yrange [0:*] }
set offsets graph 0.02, graph 0.02, graph 0.05, 0
if (spread) {
    plot for [i=1:n] data using (column("curve") == i ? column("x") : NaN):"y":"low":"high" \
             with yerrorlines ls i title names[i]
} else {
    plot for [i=1:n] data using (column("curve") == i ? column("x") : NaN):"y" \
             with linespoints ls i title names[i]
}
