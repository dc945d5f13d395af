/* mutate.c -- see mutate.h. */
#include "tests/mutate.h"

#include <stdint.h>
#include <string.h>

void mutate(char *text, struct pcg *p)
{
    static const char letters[] = "[]{}:,-#\"'\n 09aE.%&*|";
    size_t bytes = strlen(text);
    for (uint32_t n = 1 + pcg_below(p, MUTATE_ROOM); n && bytes > 1; n--) {
        size_t at = pcg_below(p, (uint32_t)bytes - 1);
        switch (pcg_below(p, 3)) {
        case 0:
            text[at] = letters[pcg_below(p, sizeof letters - 1)];
            break;
        case 1:
            memmove(text + at, text + at + 1, bytes - at);
            bytes--;
            break;
        default:
            memmove(text + at + 1, text + at, bytes - at + 1);
            bytes++;
        }
    }
}

void mutate_marks(char *text, size_t bytes, const char *marks, struct pcg *p)
{
    for (uint32_t n = 1 + pcg_below(p, 3); n; n--)
        text[pcg_below(p, (uint32_t)bytes)] = marks[pcg_below(p, (uint32_t)strlen(marks))];
}
