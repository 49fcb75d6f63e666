package arch

// What the tests of this package's whole registry see of it. They import the types, which import this package.
var (
	AsType    = asType
	ByName    = byName
	HasOutput = hasHead
	IsIdle    = isIdle
	Reclassed = reclassed
	UnreadOf  = unread
)
