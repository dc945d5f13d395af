# bars.gp -- y of a few categories, beside each other one bar a value of `by`.
set yrange [0:*]
set offsets 0.3, 0.3, graph 0.08, 0
set grid noxtics
width = 0.8 / n
plot for [i=1:n] data using (column("curve") == i ? column("x") + (i - (n + 1) / 2.0) * width : NaN):"y":(width * 0.92) \
         with boxes fill pattern i lc rgb "#303030" title names[i], \
     data using (column("x") + (column("curve") - (n + 1) / 2.0) * width):"y":(sprintf("%.3g", column("y"))) \
         with labels offset 0,0.6 font ",10" notitle
