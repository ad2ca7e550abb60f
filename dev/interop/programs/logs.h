/* Common part of the programs that log: what the words of the command line hand to PMIx_Log.
 *
 * KEY=TEXT is a channel with its text, KEY! one without, mail=ADDRESS a mail; with a '+' in front it is a directive. */
#ifndef LOGS_H
#define LOGS_H

#include <pmix.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void load_mail(pmix_info_t *info, const char *address)
{
    pmix_data_array_t *array;
    pmix_info_t *parts;

    PMIX_DATA_ARRAY_CREATE(array, 3, PMIX_INFO);
    parts = (pmix_info_t *)array->array;
    PMIX_INFO_LOAD(&parts[0], PMIX_LOG_EMAIL_ADDR, address, PMIX_STRING);
    PMIX_INFO_LOAD(&parts[1], PMIX_LOG_EMAIL_SUBJECT, "it is done", PMIX_STRING);
    PMIX_INFO_LOAD(&parts[2], PMIX_LOG_EMAIL_MSG, "one\ntwo", PMIX_STRING);
    memset(info, 0, sizeof *info);
    strncpy(info->key, PMIX_LOG_EMAIL, PMIX_MAX_KEYLEN);
    info->value.type = PMIX_DATA_ARRAY;
    info->value.data.darray = array;
}

static void load_word(pmix_info_t *info, char *word)
{
    char *text = strchr(word, '=');
    bool yes = true;

    if (strncmp(word, "mail=", 5) == 0) {
        load_mail(info, word + 5);
    } else if (text != NULL) {
        *text = '\0';
        PMIX_INFO_LOAD(info, word, text + 1, PMIX_STRING);
    } else {
        word[strcspn(word, "!")] = '\0';
        PMIX_INFO_LOAD(info, word, &yes, PMIX_BOOL);
    }
}

static pmix_status_t log_words(int count, char **words)
{
    pmix_info_t *data = calloc(count, sizeof *data), *directives = calloc(count, sizeof *directives);
    size_t channels = 0, others = 0;

    for (int n = 0; n < count; n++) {
        if (words[n][0] == '+')
            load_word(&directives[others++], words[n] + 1);
        else
            load_word(&data[channels++], words[n]);
    }
    return PMIx_Log(data, channels, others > 0 ? directives : NULL, others);
}

#endif
