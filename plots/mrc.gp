# mrc.gp -- miss-ratio curves: from 1, all is read, to 0, all is there.
set yrange [0:1]
plot for [i=1:n] data using (column("curve") == i ? column("x") : NaN):"y" \
         with lines ls i title names[i]
