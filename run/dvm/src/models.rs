//! What programs of other makers look for before they believe that they were launched in parallel.

/// Variables that every process gets.
///
/// Open MPI 4.1 (ORTE) asks its `schizo` components whether it was launched, and none of them looks at `PMIX_NAMESPACE`;
/// without a trigger its processes come up as so many jobs of one. `JSM_JSRUN_PORT` makes it use the PMIx server it was
/// given and nothing else. Open MPI 5 and plain PMIx clients need none.
pub(crate) fn launch_triggers() -> impl Iterator<Item = (&'static str, &'static str)> {
    [("JSM_JSRUN_PORT", "1")].into_iter()
}
