# tornado.gp -- what each change does alone, the largest on top.
set yrange [n + 0.7:0.3]
set offsets graph 0, graph 0.08, 0, 0
unset key
set grid noytics
set style fill solid 0.35 border lc rgb "#202020"
set arrow 1 from base, graph 0 to base, graph 1 nohead ls 1 lw 1
plot data using "high":"row":"low":"high":(column("row") - 0.35):(column("row") + 0.35):ytic(strcol("name")) \
         with boxxyerror lc rgb "#606060" notitle, \
     data using "high":"row":(sprintf("%.2f", column("value"))) with labels left offset 0.6,0 notitle
