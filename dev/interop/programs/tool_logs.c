/* A tool of the server with the pid argv[1] logs what the other words of the command line are (see logs.h), and prints the status. */
#include "attach.h"
#include "logs.h"

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    attach_to(argv[1]);
    printf("%d\n", log_words(argc - 2, argv + 2));
    fflush(stdout);
    PMIx_tool_finalize();
    return 0;
}
