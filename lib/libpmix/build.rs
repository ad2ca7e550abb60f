//! Link options: the soname that programs ask for, and that the library stays mapped once loaded.

fn main() {
    for argument in
        ["-Wl,-soname,libpmix.so.2", "-Wl,-z,nodelete,-z,now,-z,relro", "-Wl,-Bsymbolic-functions"]
    {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
