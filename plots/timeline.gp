# timeline.gp -- what ran when, a lane a resource.
set yrange [lanes + 0.6:0.4]
set grid noytics
set style fill pattern 1 border lc rgb "#303030"
set ytics add autofreq
plot for [i=1:n] data using (column("curve") == i ? column("end") : NaN):"lane":"start":"end":(column("lane") - 0.38):(column("lane") + 0.38):ytic(strcol("name")) \
         with boxxyerror fill pattern i lc rgb "#303030" title names[i]
