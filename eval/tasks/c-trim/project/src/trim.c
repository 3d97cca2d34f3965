#include "trim.h"

#include <ctype.h>
#include <string.h>

void trim(char *text)
{
    size_t start = 0;
    size_t end = strlen(text);

    while (end > 1 && isspace((unsigned char)text[end - 1]))
        end--;
    while (start < end && isspace((unsigned char)text[start]))
        start++;
    memmove(text, text + start, end - start);
    text[end] = '\0';
}
