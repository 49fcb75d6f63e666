package parts

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ingotml/ingot/mlx/engine"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_NOTICES.txt")

const notices = "../../../THIRD_PARTY_NOTICES.txt"

// THIRD_PARTY_NOTICES.txt has every module of the program, with a license that is allowed.
func TestNotices(t *testing.T) {
	modules, err := Modules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wheels, err := Wheels("")
	if err != nil {
		t.Fatal(err)
	}
	got := Notices(modules, wheels)
	if *update {
		if err := os.WriteFile(notices, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(notices)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("THIRD_PARTY_NOTICES.txt is not that of go.mod's modules: run make licenses, and review the difference")
	}
	onWindows := "github.com/inconshreveable/mousetrap"
	for _, path := range []string{"Go standard library", "github.com/spf13/cobra", onWindows} {
		if !slices.ContainsFunc(modules, func(m Module) bool { return m.Path == path && len(m.Texts) > 0 }) {
			t.Errorf("%s is not among the modules", path)
		}
	}
	nested := slices.IndexFunc(modules, func(m Module) bool { return m.Path == "github.com/klauspost/compress" })
	if nested < 0 || !slices.Equal(modules[nested].Licenses, []string{"Apache-2.0", "BSD-3-Clause", "MIT"}) {
		t.Errorf("licenses of folders in klauspost/compress are not all found: %v", modules)
	}
}

func TestRecognize(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	apache := read("../../../LICENSE")
	mit := `Copyright (c) 2026 A. Author

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`
	gpl := `This program is free software: you can redistribute it and/or modify it under the terms of the GNU General
Public License as published by the Free Software Foundation, either version 3 of the License, or (at your option) any
later version.`
	commons := "This work is licensed under the Creative Commons Attribution-NonCommercial 4.0 International License. " +
		"To view a copy of this license, visit http://creativecommons.org/licenses/by-nc/4.0/."
	for name, c := range map[string]struct{ text, want, err string }{
		"Apache":             {apache, "Apache-2.0", ""},
		"MIT":                {mit, "MIT", ""},
		"two":                {mit + apache, "MIT Apache-2.0", ""},
		"GPL":                {gpl, "", "GPL-3.0-or-later is not in the list"},
		"one allowed of two": {mit + gpl, "", "is not in the list"},
		"by a link":          {commons, "", "% of the text is"},
		"own words":          {"You may do with this what I like, and nothing else.", "", "0 % of the text"},
		"terms added":        {mit + strings.Repeat("You must not use this for work. ", 80), "", "% of the text is"},
		"empty":              {"", "", "0 % of the text"},
	} {
		ids, err := Recognize([]byte(c.text))
		if got := strings.Join(ids, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if err == nil && c.err != "" || err != nil && (c.err == "" || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: error %v, want %q", name, err, c.err)
		}
	}
}

func TestWheels(t *testing.T) {
	for platform, want := range map[string][]engine.Flavour{
		"linux/amd64": {engine.CPU, engine.CUDA12, engine.CUDA13}, "darwin/arm64": {engine.Metal}, "windows/amd64": nil,
	} {
		list, err := Wheels(platform)
		if err != nil {
			t.Fatal(err)
		}
		var got []engine.Flavour
		for _, w := range list {
			if strings.HasPrefix(w.Name, "mlx-") {
				got = append(got, w.Flavours...)
			}
			if w.License == "" || len(w.SHA256) == 0 {
				t.Errorf("%s: %+v lacks a license or a hash", platform, w)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: MLX for %v, want %v", platform, got, want)
		}
	}
	if _, err := wheelLicense("other-library"); err == nil {
		t.Error("a package without a known license is accepted")
	}
}
