/* Open MPI 5.0 reads this when it is built: which of its own parameters (OMPI_MCA_...) are those of the PMIx library, and are
 * handed on to it. */
#ifndef PMIX_FRAMEWORKS_H
#define PMIX_FRAMEWORKS_H

/* What follows the prefix, up to NULL. Ours has none. */
extern const char *const pmix_framework_names[];

#endif
