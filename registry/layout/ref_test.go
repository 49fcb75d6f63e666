package layout

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
)

func TestParseRef(t *testing.T) {
	d := digest.FromString("x")
	for s, want := range map[string]Ref{
		"oci:dir":                                Ref{Path: "dir"},
		"oci:/a/b.c/d":                           Ref{Path: "/a/b.c/d"},
		"oci:./dir:v1":                           Ref{Path: "./dir", Name: "v1"},
		"oci:dir:r.example:5000/team/m:v1.0_x-y": Ref{Path: "dir", Name: "r.example:5000/team/m:v1.0_x-y"},
		"oci:dir:_tag..x":                        Ref{Path: "dir", Name: "_tag..x"},
		"oci:dir@" + string(d):                   Ref{Path: "dir", Digest: d},
		"oci:dir:v1@" + string(d):                Ref{Path: "dir", Name: "v1", Digest: d},
		"oci-archive:m.tar:llama:latest":         Ref{Archive: true, Path: "m.tar", Name: "llama:latest"},
		"oci:me@home/dir":                        Ref{Path: "me@home/dir"},
	} {
		got, err := ParseRef(s)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
		if got.String() != s || !IsRef(s) {
			t.Errorf("%s is printed as %s", s, got)
		}
	}
	for s, want := range map[string]string{
		"oci:":                   "it names no folder; use oci:FOLDER[:TAG]",
		"oci-archive::v1":        "it names no file; use oci-archive:FILE[:TAG]",
		"oci:dir:":               "the tag after the last colon is empty",
		"oci:dir:a b":            `"a b" is neither a tag nor a name`,
		"oci:dir:/x":             `"/x" is neither a tag nor a name`,
		"oci:dir:../x":           `"../x" is neither a tag nor a name`,
		"oci:dir:x\x1b[2J":       "neither a tag nor a name",
		"oci:dir@sha256:12":      "64 lower-case hexadecimal digits",
		"oci:dir:v1@sha512:12":   "64 lower-case hexadecimal digits",
		"oci://host/x":           "a folder has no host",
		"oci:a\x00b":             "zero byte",
		"oci:d:" + longName(513): "longer than 512 bytes",
	} {
		if _, err := ParseRef(s); !errors.Is(err, ErrRef) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", s, err, want)
		}
	}
	windows, err := ParseRef(`oci:C:\models\m:v1`)
	if runtime.GOOS == "windows" {
		if want := (Ref{Path: `C:\models\m`, Name: "v1"}); err != nil || windows != want {
			t.Errorf("%+v, %v", windows, err)
		}
	} else if err == nil || !strings.Contains(err.Error(), "a path of Windows") {
		t.Errorf("%+v, %v", windows, err)
	}
}

func longName(n int) string { return strings.Repeat("x", n) }
