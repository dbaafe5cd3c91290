//! What administrators of sites load and build: the module file, and Spack's recipe.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Installation, is_there, output, workspace};
use openlapi_tests::{build_dir, skipped, stage};

fn module_file(prefix: &Path) -> std::path::PathBuf {
    prefix.join("share/modulefiles/openlapi").join(env!("CARGO_PKG_VERSION"))
}

/// Each command of the module file, as Tcl reads it: the folders exist, and MANPATH is touched only
/// where there is one.
#[test]
fn the_module_file_names_folders_that_exist() {
    if !is_there("tclsh") {
        return;
    }
    let script = r#"
        foreach name {module-whatis conflict setenv prepend-path} {
            proc $name args "puts \"$name \[join \$args\]\""
        }
        source [lindex $argv 0]
        ModulesHelp
    "#;
    let folder = build_dir().join("tests");
    fs::create_dir_all(&folder).expect("the folder can be made");
    let recorder = folder.join(format!("module-{}.tcl", std::process::id()));
    fs::write(&recorder, script).expect("a script");
    let read = |manpath: Option<&str>| {
        let mut command = Command::new("tclsh");
        command.arg(&recorder).arg(module_file(stage())).env_remove("MANPATH");
        if let Some(path) = manpath {
            command.env("MANPATH", path);
        }
        output(&mut command)
    };
    let commands = read(None);
    for (name, below) in [
        ("setenv OPENLAPI_ROOT", ""),
        ("prepend-path PATH", "/bin"),
        ("prepend-path LD_LIBRARY_PATH", "/lib"),
        ("prepend-path PKG_CONFIG_PATH", "/lib/pkgconfig"),
        ("prepend-path CMAKE_PREFIX_PATH", ""),
    ] {
        let path = format!("{}{below}", stage().display());
        assert!(commands.lines().any(|line| line == format!("{name} {path}")), "{name} {path} in {commands}");
        assert!(Path::new(&path).is_dir(), "{path}");
    }
    assert!(!commands.contains("MANPATH") && commands.contains("conflict openlapi"), "{commands}");
    assert!(read(Some("/usr/share/man")).contains("prepend-path MANPATH"));
    fs::remove_file(recorder).expect("it was made");
}

/// Loaded by Environment Modules: programs and wrappers are found; unloaded, all is as before.
#[test]
fn the_module_is_loaded_and_unloaded() {
    if !is_there("gcc") {
        return;
    }
    // Debian's folder of this machine's libraries; another system has no such name.
    let machine = output(Command::new("gcc").arg("-print-multiarch"));
    let modules = Path::new("/usr/lib").join(machine.trim()).join("modulecmd.tcl");
    if !modules.exists() {
        return skipped("the module file with Environment Modules", "they are not installed");
    }
    let script = format!(
        "before=$PATH; eval \"$({0} sh use {1}/share/modulefiles)\"; eval \"$({0} sh load openlapi)\"; \
         command -v poe; command -v xlf95_r; pkg-config --modversion lapi_r; lapi_info >info 2>&1 || :; \
         grep OPENLAPI_ROOT info; eval \"$({0} sh unload openlapi)\"; test \"$PATH\" = \"$before\" && echo as before",
        modules.display(),
        stage().display()
    );
    let work = Installation::new("module", "/opt");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).current_dir(&work.root);
    // What the caller has loaded.
    for name in ["MODULEPATH", "LOADEDMODULES", "_LMFILES_"] {
        shell.env_remove(name);
    }
    let said = output(&mut shell);
    let (prefix, version) = (stage().display(), env!("CARGO_PKG_VERSION"));
    assert_eq!(said, format!("{prefix}/bin/poe\n{prefix}/bin/xlf95_r\n{version}\nas before\n"));
}

/// The recipe, with a stand-in for Spack that notes what it asks for: what it gives make are
/// variables of the Makefile.
#[test]
fn the_recipe_of_spack_installs_by_make() {
    if !is_there("python3") {
        return;
    }
    let script = r#"
import sys, types
asked, ran = [], []
package = types.ModuleType("spack.package")
class Package: pass
def note(name):
    return lambda *args, **more: asked.append(name + " " + " ".join(map(str, args)))
for name in ["license", "version", "variant", "depends_on", "conflicts", "requires"]:
    setattr(package, name, note(name))
package.Package = Package
package.make = lambda *args: ran.append(args)
package.run_after = package.on_package_attributes = lambda *args, **more: lambda method: method
package.Executable = lambda path: lambda *args: ran.append((path,) + args)
package.__all__ = [name for name in dir(package) if not name.startswith("_")]
sys.modules["spack"] = types.ModuleType("spack")
sys.modules["spack.package"] = package
space = {}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), space)
recipe = space["Openlapi"]()
class Place(str):
    def __getattr__(self, name): return Place(self + "/" + name)
class Spec(dict):
    def satisfies(self, what): return True
class Env:
    def set(self, *args): ran.append(("set",) + args)
    def prepend_path(self, *args): ran.append(("prepend",) + args)
recipe.prefix = Place("/opt/lapi")
recipe.spec = Spec(libfabric=type("Found", (), {"prefix": Place("/opt/fabric")}))
recipe.install(recipe.spec, recipe.prefix)
recipe.setup_run_environment(Env())
recipe.check_install()
print("\n".join(asked + [" ".join(map(str, line)) for line in ran]))
"#;
    let recipe = workspace().join("packaging/spack/packages/openlapi/package.py");
    let said = output(Command::new("python3").args(["-c", script]).arg(recipe));
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).expect("the manifest");
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).expect("a version");
    // The library names the version where the one that it opens is too old.
    let bindings = fs::read_to_string(workspace().join("libfabric-sys/src/lib.rs")).expect("the bindings");
    let before = bindings.split(" or later\"").next().expect("a text");
    let libfabric = before.rsplit("libfabric ").next().unwrap_or_default();
    for line in [
        &format!("depends_on rust@{}:", rust.trim_matches('"')),
        &format!("depends_on libfabric@{libfabric}:"),
        "depends_on gmake",
        "requires target=x86_64: target=aarch64: target=ppc64le:",
        "make install PREFIX=/opt/lapi ADVICE=no",
        "prepend LD_LIBRARY_PATH /opt/fabric/lib",
        "/opt/lapi/bin/poe /opt/lapi/bin/lapi_info -procs 2",
    ] {
        let line = line.strip_prefix("make ").unwrap_or(line);
        assert!(said.lines().any(|said| said == line), "{line} in {said}");
    }
    assert!(
        fs::read_to_string(workspace().join("packaging/spack/repo.yaml"))
            .is_ok_and(|repo| repo.contains("namespace:"))
    );
    // As the recipe calls make.
    let installation = Installation::in_place("spack");
    let prefix = format!("PREFIX={}", installation.prefix);
    let mut make = Command::new("make");
    make.args(["install", &prefix, "ADVICE=no"]).env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
    assert!(make.current_dir(workspace()).output().is_ok_and(|made| made.status.success()));
    let folder = Path::new(&installation.prefix);
    assert!(folder.join("bin/poe").exists() && module_file(folder).exists());
}
