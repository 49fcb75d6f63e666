package layout

import (
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/ingotml/ingot/manifest"
	"github.com/opencontainers/go-digest"
)

// Prefixes of references to layouts and archives.
const (
	Scheme        = "oci:"
	ArchiveScheme = "oci-archive:"
)

// Errors for use with [errors.Is].
var (
	ErrRef     = errors.New("invalid reference to a layout")
	ErrLayout  = errors.New("not a usable OCI image layout")
	ErrNoImage = errors.New("no such image in the layout")
)

// Ref is a reference to an image in a layout or an archive: oci:DIR[:NAME][@DIGEST] or
// oci-archive:FILE[:NAME][@DIGEST].
type Ref struct {
	Archive bool
	Path    string
	Name    string        // a tag or a whole name; empty if none is given
	Digest  digest.Digest // of the image's manifest; empty if none is given
}

// IsRef reports whether a text begins like a reference to a layout or an archive.
func IsRef(s string) bool { return strings.HasPrefix(s, Scheme) || strings.HasPrefix(s, ArchiveScheme) }

// String returns the reference in the form that [ParseRef] parses.
func (r Ref) String() string {
	s := r.place()
	if r.Name != "" {
		s += ":" + r.Name
	}
	if r.Digest != "" {
		s += "@" + string(r.Digest)
	}
	return s
}

// place is the reference without the image.
func (r Ref) place() string {
	if r.Archive {
		return ArchiveScheme + r.Path
	}
	return Scheme + r.Path
}

// with returns the reference to another image of the same layout.
func (r Ref) with(name string) Ref { return Ref{Archive: r.Archive, Path: r.Path, Name: name} }

var (
	// refName matches names by the grammar of image-spec v1.1.1, annotations.md, and tags of the distribution
	// specification.
	refName = regexp.MustCompile(`^[A-Za-z0-9]+((--|[-._:@+/])[A-Za-z0-9]+)*$|^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

	digestEnd   = regexp.MustCompile(`@(sha256:[0-9a-f]{64})$`)
	windowsPath = regexp.MustCompile(`^[A-Za-z]:[\\/]`)
)

// maxRefName limits a name in a reference.
const maxRefName = 512

// ParseRef parses a reference. As in skopeo, the path ends at the first colon. A name is a tag, or a whole name such as
// registry.example.com/team/model:v1. The error is an [ErrRef].
func ParseRef(s string) (Ref, error) {
	r := Ref{Archive: strings.HasPrefix(s, ArchiveScheme)}
	rest := strings.TrimPrefix(strings.TrimPrefix(s, ArchiveScheme), Scheme)
	fail := func(format string, args ...any) (Ref, error) {
		return Ref{}, fmt.Errorf("%q: %s: %w", manifest.Clip(s), fmt.Sprintf(format, args...), ErrRef)
	}
	what, scheme := "folder", Scheme
	if r.Archive {
		what, scheme = "file", ArchiveScheme
	}
	if m := digestEnd.FindStringSubmatch(rest); m != nil {
		r.Digest = digest.Digest(m[1])
		rest = strings.TrimSuffix(rest, m[0])
	}
	drive := ""
	if windowsPath.MatchString(rest) {
		if runtime.GOOS != "windows" {
			return fail("%s is a path of Windows; give the %s as a path of this system: %s%s[:TAG]",
				manifest.Clip(rest), what, scheme, strings.ToUpper(what))
		}
		drive, rest = rest[:2], rest[2:]
	}
	path, name, named := strings.Cut(rest, ":")
	r.Path, r.Name = drive+path, name
	switch {
	case path == "":
		return fail("it names no %s; use %s%s[:TAG]", what, scheme, strings.ToUpper(what))
	case strings.HasPrefix(path, "//"):
		return fail("a %s has no host; use %s%s[:TAG]", what, scheme, strings.ToUpper(what))
	case strings.ContainsRune(path, 0):
		return fail("the path contains a zero byte")
	case strings.Contains(path, "@sha256"), strings.Contains(name, "@"):
		return fail("what follows '@' is not sha256: and 64 lower-case hexadecimal digits")
	case named && name == "":
		return fail("the tag after the last colon is empty; leave out the colon, or give a tag")
	case len(name) > maxRefName:
		return fail("the name of the image is longer than %d bytes", maxRefName)
	case named && !refName.MatchString(name):
		return fail("%q is neither a tag nor a name of an image; a path ends at the first colon", manifest.Clip(name))
	}
	return r, nil
}
