/* Session control: a signal for every process of the session, and refused requests. For two ranks or more. */
#include "check.h"

#include <signal.h>

static volatile sig_atomic_t signalled;

static void note(int number)
{
    signalled = number;
}

static pmix_status_t control(uint32_t session, const char *key, const void *value, pmix_data_type_t type)
{
    pmix_info_t directive;
    pmix_status_t status;

    PMIX_INFO_LOAD(&directive, key, value, type);
    status = PMIx_Session_control(session, &directive, 1, NULL, NULL);
    PMIX_INFO_DESTRUCT(&directive);
    return status;
}

int main(void)
{
    int number = SIGUSR1, none = 4711;

    start();
    signal(SIGUSR1, note);
    barrier();
    if (me.rank == 0) {
        EXPECT(PMIX_ERR_NOT_FOUND, control(7, PMIX_SESSION_SIGNAL, &number, PMIX_INT));
        EXPECT(PMIX_ERR_BAD_PARAM, control(0, PMIX_SESSION_SIGNAL, &none, PMIX_INT));
        EXPECT(PMIX_ERR_NOT_SUPPORTED, control(0, PMIX_SESSION_PREEMPT, NULL, PMIX_BOOL));
        CHECK(signalled == 0, "signal %d", (int) signalled);
        OK(control(0, PMIX_SESSION_SIGNAL, &number, PMIX_INT));
    }
    while (signalled == 0)
        usleep(1000);
    CHECK(signalled == SIGUSR1, "signal %d", (int) signalled);
    OK(control(UINT32_MAX, PMIX_SESSION_RESUME, NULL, PMIX_BOOL));
    barrier();
    if (me.rank == 0)
        printf("rank 0: every rank was signalled\n");
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
