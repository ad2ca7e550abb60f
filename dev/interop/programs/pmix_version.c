/* Prints which library this rank uses. */
#include "check.h"

int main(void)
{
    start();
    finish(PMIx_Get_version());
    return 0;
}
