#include "hex.h"

int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a')
        return digit - 'a' + 10;
    return -1;
}
