package engine

// Wheel is a Python package that Install downloads.
type Wheel struct {
	Name, Version string
	SHA256        []string // of its file for each platform, in hex
}

// Wheels lists the packages of each flavour that exists for a platform (OS/ARCH), MLX first.
func Wheels(platform string) (map[Flavour][]Wheel, error) {
	list := map[Flavour][]Wheel{}
	for _, f := range flavours {
		l, err := lockOf(f)
		if err != nil {
			return nil, err
		}
		if len(l.platforms[platform]) == 0 {
			continue
		}
		for _, p := range l.packages {
			list[f] = append(list[f], Wheel{p.name, p.version, p.hashes})
		}
	}
	return list, nil
}
