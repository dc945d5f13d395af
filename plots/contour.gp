# contour.gp -- a quantity over a grid: greys, darker is more, with labelled lines at the wanted levels.
set view map
set style fill solid
set autoscale xfix
set autoscale yfix
set pm3d explicit
set palette defined (0 "#ffffff", 1 "#858585")
set cblabel zlabel
set contour base
eval "set cntrparam levels discrete ".levels
set cntrlabel onecolor start 4 interval 30 font ",12"
unset key
set grid front
splot data using "x":"y":"z" with pm3d notitle, \
      data using "x":"y":"z" with lines lc rgb "#000000" lw 2 nosurface notitle, \
      data using "x":"y":"z" with labels nosurface textcolor rgb "#000000" notitle, \
      marks using "x":"y":(0) with points pt 7 ps 1.6 lc rgb "#ffffff" nocontour notitle, \
      marks using "x":"y":(0) with points pt 6 ps 1.6 lw 2 lc rgb "#000000" nocontour notitle
