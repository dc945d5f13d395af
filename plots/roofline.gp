# roofline.gp -- attainable operations a second against operations a byte, under the roofs of the processor,
# of memory and of storage. A run stands once under each roof: at its operations per byte of memory, and per
# byte of flash.
set logscale xy
set format "%g"
roof(x, Bps) = x * Bps < peak ? x * Bps : peak
set xrange [xmin:xmax]
set samples 400
set key bottom right inside vertical
plot roof(x, dram_Bps)  with lines ls 1 lw 3 title "memory roof", \
     roof(x, flash_Bps) with lines ls 2 lw 3 title "storage roof", \
     data using "dram_x":"y"  with points pt 7 ps 1.3 lc rgb "#000000" title "a run, by its bytes of memory", \
     data using "flash_x":"y" with points pt 6 ps 1.5 lw 2 lc rgb "#0060a8" title "the same, by its bytes of flash"
