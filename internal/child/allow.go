package child

import (
	"os"
	"regexp"
	"slices"
	"strings"
)

// EnvMore names variables, separated by commas, that all children get beside those that they need: for a variable of a
// driver or a tool that no list of this package has.
const EnvMore = "INGOT_CHILD_ENV"

// Needs is what a kind of child reads in its environment.
type Needs int

// Kinds of children. A program of the user's that acts for the user, such as pip or a credential helper, gets the whole
// environment instead.
const (
	System Needs = iota // a program of the system
	Model               // a model, or a rank of one: it parses untrusted files and uses no network but its ranks'
	Tool                // a compiler, and programs that are asked for their version
)

// Names that each kind gets; an ending * stands for all names that begin so. Names alone do not tell what is secret:
// what is not listed is not passed.
var (
	system = []string{
		"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TMP", "TEMP", "TZ", "TZDIR",
		"LANG", "LANGUAGE", "LC_ALL", "LC_ADDRESS", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT",
		"LC_MESSAGES", "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
		"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR",
		// The dynamic loader's and the C library's. What is relative in lists of folders is dropped by Environ.
		"LD_LIBRARY_PATH", "LD_PRELOAD", "LD_BIND_NOW", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
		"DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_FRAMEWORK_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "GCONV_PATH",
		"MALLOC_*",
		// Windows: programs do not start, and find no folders, without some of these.
		"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "USERPROFILE", "USERNAME", "HOMEDRIVE", "HOMEPATH",
		"APPDATA", "LOCALAPPDATA", "ALLUSERSPROFILE", "ProgramData", "ProgramFiles", "ProgramFiles(x86)", "ProgramW6432",
		"CommonProgramFiles", "OS", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "PROCESSOR_IDENTIFIER",
	}
	model = []string{
		"INGOT_HOME", "INGOT_CACHE", "INGOT_TRUST", "INGOT_ENGINE", "INGOT_ENGINE_FLAVOUR", "INGOT_NO_SYNC",
		"INGOT_CPU_ISA", "INGOT_CPU_MATH", "INGOT_CPU_THREADS", "INGOT_TEST_FAULT", "INGOT_CHILD_ENV",
		"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GOTRACEBACK", "GORACE", "GOCOVERDIR", // of this program's runtime
		// The engine and its libraries.
		"MLX_*", "CUDA_*", "CUDNN_*", "CUBLAS_*", "CUBLASLT_*", "NVIDIA_*", "NVCC_*", "METAL_*", "MTL_*", "OMP_*", "GOMP_*",
		"KMP_*", "OPENBLAS_*", "BLIS_*", "MKL_*", "VECLIB_*", "CPATH", "CPLUS_INCLUDE_PATH",
		// Launchers of ranks, and their transports.
		"NCCL_*", "OMPI_*", "OPAL_*", "PMIX_*", "PRTE_*", "PMI_*", "I_MPI_*", "HYDRA_*", "HYDI_*", "MPIR_*", "MPICH_*",
		"MV2_*", "UCX_*", "FI_*", "SLURM_*",
	}
	tool = []string{
		"INGOT_PYTHON", "INGOT_CACHE", "INGOT_TRUST", "INGOT_CHILD_ENV",
		"CC", "CXX", "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX",
		"SDKROOT", "DEVELOPER_DIR", "MACOSX_DEPLOYMENT_TARGET", "CCACHE_*", "DISTCC_*", "ICECC_*", "NIX_*", "CONDA_*",
		"CUDA_*", "VSINSTALLDIR", "VCINSTALLDIR", "INCLUDE", "LIB",
		// Python, and what chooses one.
		"PYTHON*", "VIRTUAL_ENV", "PYENV_*", "ASDF_*", "MISE_*",
	}
)

// secretWord finds names of secrets among those that only a beginning allows, such as NVIDIA_API_KEY and SLURM_JWT.
var secretWord = regexp.MustCompile(`(?i)KEY|TOKEN|SECRET|PASS|PWD|CRED|AUTH|JWT|COOKIE|PRIVATE|LICEN[CS]E|_PAT$`)

// credentials finds a user in an address: scheme://user:password@host.
var credentials = regexp.MustCompile(`://[^/?#\s]*@`)

// Allowed returns the variables of an environment that a kind of child needs, and those that INGOT_CHILD_ENV names in
// it. Values with credentials in an address are left out. Command cleans the result.
func Allowed(environ []string, needs Needs) []string {
	lists := [][]string{system}
	switch needs {
	case Model:
		lists = append(lists, model)
	case Tool:
		lists = append(lists, tool)
	}
	more := strings.FieldsFunc(Getenv(environ, EnvMore), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.DeleteFunc(slices.Clone(environ), func(variable string) bool {
		name, value, _ := strings.Cut(variable, "=")
		if has(more, name) {
			return false
		}
		return !slices.ContainsFunc(lists, func(list []string) bool { return listed(list, name) }) ||
			credentials.MatchString(value)
	})
}

// Environment returns the variables of this process that a kind of child needs.
func Environment(needs Needs) []string { return Allowed(os.Environ(), needs) }

// listed reports whether a list has a name, or a beginning of it that does not look like a secret's.
func listed(list []string, name string) bool {
	return slices.ContainsFunc(list, func(allowed string) bool {
		begin, open := strings.CutSuffix(allowed, "*")
		if !open {
			return same(allowed, name)
		}
		return len(name) >= len(begin) && same(name[:len(begin)], begin) && !secretWord.MatchString(name)
	})
}
