/* Open MPI 5.0 reads this at build time: which of its own parameters (OMPI_MCA_...) belong to the PMIx library, and are passed on
 * to it. */
#ifndef PMIX_FRAMEWORKS_H
#define PMIX_FRAMEWORKS_H

/* Names after the prefix, up to NULL. Ours has none. */
extern const char *const pmix_framework_names[];

#endif
