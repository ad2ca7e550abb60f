/* Spawns jobs, one after another, as its arguments state; prints "NAME: STATUS" for each spawn, and which directives were ignored.
 *
 *   set NAME VALUE | add NAME VALUE | prepend NAME VALUE SEPARATOR | append NAME VALUE SEPARATOR | first NAME VALUE SEPARATOR
 *   unset NAME | flag KEY | no KEY | seconds KEY NUMBER | text KEY VALUE | require KEY VALUE      directives of the next job
 *   app                           what follows applies only to the next program
 *   variable NAME=VALUE           in the environment of the next program
 *   cwd DIRECTORY | ranks NUMBER  of the next program
 *   chdir DIRECTORY               this process goes there
 *   with PROGRAM                  one more program of the next job, before the last
 *   run PROGRAM | sh SCRIPT       spawns, with this as the last program
 *   kill                          kills the job spawned last, by job control
 *   signal NUMBER                 sends a signal to that job
 *   until FILE                    waits for it
 *   exit CODE                     ends without finalize
 */
#include "check.h"
#include <time.h>

static pmix_info_t job[32], app[32];
static pmix_app_t apps[4];
static size_t job_count, app_count, programs;
static bool of_app;
static pmix_proc_t last;

static pmix_info_t *next(void)
{
    size_t *count = of_app ? &app_count : &job_count;

    CHECK(*count < 32, "too many directives");
    return of_app ? &app[(*count)++] : &job[(*count)++];
}

static void change(const char *key, const char *name, const char *value, const char *separator)
{
    pmix_envar_t envar = { .envar = (char *) name, .value = (char *) value, .separator = separator[0] };

    PMIX_INFO_LOAD(next(), key, &envar, PMIX_ENVAR);
}

/* Adds a program; `shell`: given as a script. */
static void program(const char *name, bool shell)
{
    pmix_app_t *one = &apps[programs++];
    pmix_status_t status;

    one->cmd = strdup(shell ? "sh" : name);
    PMIX_ARGV_APPEND(status, one->argv, one->cmd);
    if (shell) {
        PMIX_ARGV_APPEND(status, one->argv, "-c");
        PMIX_ARGV_APPEND(status, one->argv, name);
    }
    (void) status;
    if (one->maxprocs == 0)
        one->maxprocs = 1;
    if (app_count > 0) {
        PMIX_INFO_CREATE(one->info, app_count);
        for (size_t n = 0; n < app_count; n++)
            PMIX_INFO_XFER(&one->info[n], &app[n]);
        one->ninfo = app_count;
    }
    app_count = 0;
    of_app = false;
}

static void spawn(const char *name)
{
    char child[PMIX_MAX_NSLEN + 1] = "";
    pmix_status_t status = PMIx_Spawn(job, job_count, apps, programs, child);
    pmix_value_t *ignored;
    pmix_proc_t all;

    printf("%s: %d\n", name, status);
    PMIX_LOAD_PROCID(&all, child, PMIX_RANK_WILDCARD);
    last = all;
    if (status == PMIX_SUCCESS && PMIx_Get(&all, "phalanx.ignored", NULL, 0, &ignored) == PMIX_SUCCESS) {
        printf("ignored: %s\n", ignored->data.string);
        PMIX_VALUE_RELEASE(ignored);
    }
    fflush(stdout);
    CHECK((status == PMIX_SUCCESS) == (child[0] != '\0'), "the job's name is '%s'", child);
    memset(apps, 0, sizeof apps);
    job_count = programs = 0;
}

int main(int argc, char **argv)
{
    int seconds;
    bool yes = true, no = false;
    int number;
    pmix_status_t status;

    start();
    memset(apps, 0, sizeof apps);
    for (char **word = argv + 1; word < argv + argc;) {
        const char *verb = *word++;
        pmix_app_t *next_app = &apps[programs];

        if (strcmp(verb, "set") == 0) {
            change(PMIX_SET_ENVAR, word[0], word[1], ":");
            word += 2;
        } else if (strcmp(verb, "add") == 0) {
            change(PMIX_ADD_ENVAR, word[0], word[1], ":");
            word += 2;
        } else if (strcmp(verb, "prepend") == 0) {
            change(PMIX_PREPEND_ENVAR, word[0], word[1], word[2]);
            word += 3;
        } else if (strcmp(verb, "append") == 0) {
            change(PMIX_APPEND_ENVAR, word[0], word[1], word[2]);
            word += 3;
        } else if (strcmp(verb, "first") == 0) {
            change(PMIX_FIRST_ENVAR, word[0], word[1], word[2]);
            word += 3;
        } else if (strcmp(verb, "unset") == 0) {
            PMIX_INFO_LOAD(next(), PMIX_UNSET_ENVAR, *word++, PMIX_STRING);
        } else if (strcmp(verb, "flag") == 0) {
            PMIX_INFO_LOAD(next(), *word++, &yes, PMIX_BOOL);
        } else if (strcmp(verb, "no") == 0) {
            PMIX_INFO_LOAD(next(), *word++, &no, PMIX_BOOL);
        } else if (strcmp(verb, "seconds") == 0) {
            seconds = atoi(word[1]);
            PMIX_INFO_LOAD(next(), word[0], &seconds, PMIX_INT);
            word += 2;
        } else if (strcmp(verb, "text") == 0) {
            PMIX_INFO_LOAD(next(), word[0], word[1], PMIX_STRING);
            word += 2;
        } else if (strcmp(verb, "require") == 0) {
            pmix_info_t *info = next();

            PMIX_INFO_LOAD(info, word[0], word[1], PMIX_STRING);
            PMIX_INFO_REQUIRED(info);
            word += 2;
        } else if (strcmp(verb, "app") == 0) {
            of_app = true;
        } else if (strcmp(verb, "variable") == 0) {
            PMIX_ARGV_APPEND(status, next_app->env, *word++);
        } else if (strcmp(verb, "cwd") == 0) {
            next_app->cwd = strdup(*word++);
        } else if (strcmp(verb, "chdir") == 0) {
            CHECK(chdir(*word) == 0, "cannot go to %s", *word);
            word++;
        } else if (strcmp(verb, "ranks") == 0) {
            next_app->maxprocs = atoi(*word++);
        } else if (strcmp(verb, "with") == 0) {
            program(*word++, false);
        } else if (strcmp(verb, "run") == 0) {
            program(*word, false);
            spawn(*word++);
        } else if (strcmp(verb, "sh") == 0) {
            program(*word++, true);
            spawn("sh");
        } else if (strcmp(verb, "kill") == 0) {
            PMIX_INFO_LOAD(&job[0], PMIX_JOB_CTRL_KILL, &yes, PMIX_BOOL);
            OK(PMIx_Job_control(&last, 1, job, 1, NULL, NULL));
        } else if (strcmp(verb, "signal") == 0) {
            number = atoi(*word++);
            PMIX_INFO_LOAD(&job[0], PMIX_JOB_CTRL_SIGNAL, &number, PMIX_INT);
            OK(PMIx_Job_control(&last, 1, job, 1, NULL, NULL));
        } else if (strcmp(verb, "until") == 0) {
            while (access(*word, F_OK) != 0)
                nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
            word++;
        } else if (strcmp(verb, "exit") == 0) {
            _exit(atoi(*word));
        } else {
            CHECK(false, "no such word: %s", verb);
        }
    }
    (void) status;
    OK(PMIx_Finalize(NULL, 0));
    return 0;
}
