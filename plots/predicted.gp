# predicted.gp -- predicted against measured: on the line is right. Across, the measurement's own spread; up and
# down, the prediction's interval.
set logscale xy
set key inside bottom right vertical
set size ratio 1
plot x with lines ls 20 title "predicted = measured", \
     for [i=1:n] data using (column("curve") == i ? column("x") : NaN):"y":"xlow":"xhigh":"low":"high" \
         with xyerrorbars ls i lw 1 ps 0.7 title names[i]
