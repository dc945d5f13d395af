# style.gp -- the one look of all figures. A curve is told by its dashes and its mark as well as by its grey, so a
# figure is as readable printed in black and white. Texts come from outside: underscores in column names
# are no subscripts.
if (strlen(out) > 4 && out[strlen(out)-3:] eq ".png") {
    set terminal pngcairo noenhanced size 1200,760 font "Sans,15" background rgb "white"
} else {
    set terminal svg noenhanced size 960,600 font "Sans,14" background rgb "white"
}
set output out
set datafile separator comma
set datafile columnheaders
set encoding utf8
set title title font ",16" offset 0,0.5
set xlabel xlabel
set ylabel ylabel
set border 3 lc rgb "#404040"
set tics nomirror out textcolor rgb "#202020"
set grid lc rgb "#d8d8d8" lt 1 dt 1 lw 0.5
set key outside below center horizontal samplen 3.5 spacing 1.15 width 1 textcolor rgb "#202020"
if (legend ne "") { set key title "\n".legend }
set style line 1 lc rgb "#000000" lw 2.2 dt 1       pt 7  ps 0.8
set style line 2 lc rgb "#0060a8" lw 2.2 dt (9,4)   pt 5  ps 0.8
set style line 3 lc rgb "#c04000" lw 2.2 dt (3,3)   pt 9  ps 0.9
set style line 4 lc rgb "#2a9080" lw 2.2 dt (10,3,2,3) pt 11 ps 0.9
set style line 5 lc rgb "#8060c0" lw 2.0 dt 1       pt 6  ps 0.9
set style line 6 lc rgb "#d08800" lw 2.0 dt (9,4)   pt 4  ps 0.9
set style line 7 lc rgb "#707070" lw 2.0 dt (3,3)   pt 8  ps 1.0
set style line 8 lc rgb "#d070a0" lw 2.0 dt (10,3,2,3) pt 10 ps 1.0
set style line 9 lc rgb "#506020" lw 1.8 dt (14,4)  pt 12 ps 1.0
set style line 10 lc rgb "#40a0e0" lw 1.8 dt (2,4)  pt 13 ps 1.0
set style line 11 lc rgb "#a06060" lw 1.8 dt (6,2,2,2,2,2) pt 1 ps 1.0
set style line 12 lc rgb "#a0a0a0" lw 1.8 dt 1      pt 2  ps 1.0
set style line 13 lc rgb "#606060" lw 1.8 dt (9,4)  pt 3  ps 1.0
set style line 14 lc rgb "#303080" lw 1.8 dt (3,3)  pt 14 ps 1.0
set style line 20 lc rgb "#909090" lw 1.2 dt 1
set style fill pattern 1 border lc rgb "#202020"
if (logs eq "x" || logs eq "xy") { set logscale x }
if (logs eq "y" || logs eq "xy") { set logscale y }
if (note ne "") { set label 100 note at screen 0.985, 0.02 right front textcolor rgb "#505050" font ",11" }
eval more
