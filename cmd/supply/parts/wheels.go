package parts

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ingotml/ingot/mlx/engine"
)

// platforms are those that have an engine.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64"}

// wheelLicenses are the licenses of the engine's packages, by the beginning of their names. A package has the text of
// its license with it.
var wheelLicenses = []struct{ prefix, license string }{
	{"mlx-", "MIT"},
	{"nvidia-nccl-", "NOASSERTION"}, // its metadata names none
	{"nvidia-", "LicenseRef-NVIDIA-Proprietary"},
}

// Wheel is a package of the engine. `ingot engine install` downloads it; the program does not contain it.
type Wheel struct {
	engine.Wheel
	License  string           // SPDX identifier
	Flavours []engine.Flavour // that need it
}

// Wheels lists the packages of all engines for a platform (OS/ARCH), by name. "" stands for all platforms.
func Wheels(platform string) ([]Wheel, error) {
	found := map[string]*Wheel{}
	for _, p := range platforms {
		if platform != "" && p != platform {
			continue
		}
		flavours, err := engine.Wheels(p)
		if err != nil {
			return nil, err
		}
		for f, list := range flavours {
			for _, w := range list {
				key := w.Name + " " + w.Version
				if found[key] == nil {
					license, err := wheelLicense(w.Name)
					if err != nil {
						return nil, err
					}
					found[key] = &Wheel{Wheel: w, License: license}
				}
				found[key].Flavours = append(found[key].Flavours, f)
			}
		}
	}
	var list []Wheel
	for _, w := range found {
		slices.Sort(w.Flavours)
		w.Flavours = slices.Compact(w.Flavours)
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b Wheel) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Version, b.Version))
	})
	return list, nil
}

func wheelLicense(name string) (string, error) {
	for _, l := range wheelLicenses {
		if strings.HasPrefix(name, l.prefix) {
			return l.license, nil
		}
	}
	return "", fmt.Errorf("license of the engine's package %s: add it to wheelLicenses in cmd/supply/parts", name)
}

// Notices is the text of THIRD_PARTY_NOTICES.txt: what each license demands to be passed on with the program.
func Notices(modules []Module, wheels []Wheel) string {
	var out strings.Builder
	fmt.Fprint(&out, "Software of others in ingot\n\n"+
		"The program contains these modules, under the licenses below:\n\n")
	type document struct {
		texts   []Text
		modules []string
	}
	documents := map[string]*document{}
	for _, m := range modules {
		fmt.Fprintf(&out, "  %-50s %s\n", m, strings.Join(m.Licenses, ", "))
		key := ""
		for _, t := range m.Texts {
			key += "\x00" + t.Name + "\x00" + strings.Join(strings.Fields(t.Text), " ")
		}
		if documents[key] == nil {
			documents[key] = &document{texts: m.Texts}
		}
		documents[key].modules = append(documents[key].modules, m.String())
	}
	fmt.Fprint(&out, "\nThe program does not contain the engine. `ingot engine install` downloads its packages, each of\n"+
		"which has the text of its license with it:\n\n")
	for _, w := range wheels {
		fmt.Fprintf(&out, "  %-50s %s\n", w.Name+" "+w.Version, w.License)
	}
	list := slices.SortedFunc(maps.Values(documents), func(a, b *document) int {
		return strings.Compare(a.modules[0], b.modules[0])
	})
	for _, d := range list {
		fmt.Fprintf(&out, "\n%s\n%s\n", strings.Repeat("=", 100), strings.Join(d.modules, "\n"))
		for _, t := range d.texts {
			fmt.Fprintf(&out, "%s\n%s\n\n%s\n", strings.Repeat("-", 100), t.Name, strings.Trim(normalized(t.Text), "\n"))
		}
	}
	return out.String()
}

// normalized has no carriage returns and no spaces at the ends of lines.
func normalized(text string) string {
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \t\f")
	}
	return strings.Join(lines, "\n")
}
