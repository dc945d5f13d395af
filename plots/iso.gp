# iso.gp -- where each curve's quantity over the grid has one value: all that could explain a measurement.
set contour base
unset surface
eval "set cntrparam levels discrete ".levels
do for [i=1:n] {
    eval sprintf("set table $iso%d", i)
    splot data index (i - 1) using "x":"y":"z"
    unset table
}
set datafile separator whitespace
set datafile nocolumnheaders
plot for [i=1:n] "$iso".i using 1:2 with lines ls i title names[i]
