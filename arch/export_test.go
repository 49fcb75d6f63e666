package arch

import "slices"

// What the tests of this package's whole registry see of it. They import the types, which import this package.
var (
	AsType    = asType
	ByName    = byName
	HasOutput = hasHead
	Reclassed = reclassed
	UnreadOf  = unread
)

// IsIdle reports whether a key has no influence on models of a type.
func IsIdle(key string, a Arch) bool { return a.isIdle(key) }

// Watched returns a type that shows each configuration before it is read.
func Watched(a Arch, show func(config []byte)) Arch {
	parse := a.parse
	a.parse = func(config []byte) (Model, error) {
		show(config)
		return parse(config)
	}
	return a
}

// Replace puts a type in the place of the registered one of its name. The result undoes that.
func Replace(a Arch) (undo func()) {
	i := slices.IndexFunc(known, func(b Arch) bool { return b.ModelType == a.ModelType })
	was := known[i]
	known[i] = a
	return func() { known[i] = was }
}
