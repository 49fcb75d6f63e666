package child

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// searched are lists of folders from which a dynamic loader, a compiler or an interpreter takes code. An empty entry
// means the current folder to most of them.
var searched = []string{
	"PATH",
	"LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH",
	"DYLD_FALLBACK_FRAMEWORK_PATH",
	"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "COMPILER_PATH", "GCC_EXEC_PREFIX", "GCONV_PATH",
	"INGOT_TRUST",
	"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE",
	"PERL5LIB", "PERLLIB", "RUBYLIB", "NODE_PATH",
}

// named are files, folders and programs that the user has named for ingot or its children. CXX may have arguments
// behind the program.
var named = []string{
	"HOME", "TMPDIR", "TMP", "TEMP",
	"INGOT_HOME", "INGOT_CACHE", "INGOT_ENGINE", "INGOT_PYTHON", "CXX",
	"DOCKER_CONFIG", "REGISTRY_AUTH_FILE", "GNUPGHOME", "PASSWORD_STORE_DIR", "NETRC",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"PIP_CONFIG_FILE", "PIP_CERT", "PIP_CLIENT_CERT", "PIP_CACHE_DIR",
}

// programs are those of named that hold a command, where a word without a separator is searched in PATH.
var programs = []string{"INGOT_PYTHON", "CXX"}

// Environ gives an environment for a child that has left the caller's folder: relative entries of the lists that code
// is searched in are dropped, and what the user has named by a relative path is named by an absolute one.
func Environ(environ []string) []string {
	out := make([]string, 0, len(environ)+1)
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		switch {
		case has([]string{"PWD", "OLDPWD"}, name):
			continue
		case has(searched, name):
			if value = absoluteEntries(value); value == "" {
				continue
			}
			kv = name + "=" + value
		case has(named, name) && value != "":
			kv = name + "=" + absolutePath(value, has(programs, name))
		}
		out = append(out, kv)
	}
	return out
}

// absoluteEntries is a list without its relative and empty entries.
func absoluteEntries(list string) string {
	entries := filepath.SplitList(list)
	absolute := slices.DeleteFunc(entries, func(entry string) bool { return !filepath.IsAbs(entry) })
	return strings.Join(absolute, string(filepath.ListSeparator))
}

func absolutePath(value string, program bool) string {
	path, arguments := value, ""
	if program {
		if i := strings.IndexAny(value, " \t"); i >= 0 {
			path, arguments = value[:i], value[i:]
		}
		if !strings.ContainsAny(path, `/`+string(filepath.Separator)) {
			return value
		}
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return value // there is no current folder that it could be relative to
	}
	return absolute + arguments
}

// Getenv gives a variable of an environment, the last where it is there twice.
func Getenv(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if key, value, ok := strings.Cut(kv, "="); ok && same(key, name) {
			return value
		}
	}
	return ""
}

func has(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return same(n, name) })
}

// same compares names of variables as the system does.
func same(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}
