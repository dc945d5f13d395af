# quantiles.gp -- which share of the rows has at most this error.
set yrange [0:1]
set logscale x
set format x "%g"
plot for [i=1:n] data using (column("curve") == i ? column("x") : NaN):"y" with steps ls i title names[i]
