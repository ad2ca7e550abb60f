//! How the library is linked: the name that programs ask for, and that it stays mapped once it has been loaded.

fn main() {
    for argument in
        ["-Wl,-soname,libpmix.so.2", "-Wl,-z,nodelete,-z,now,-z,relro", "-Wl,-Bsymbolic-functions"]
    {
        println!("cargo::rustc-cdylib-link-arg={argument}");
    }
    println!("cargo::rerun-if-changed=build.rs");
}
