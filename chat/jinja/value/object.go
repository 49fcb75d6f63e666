package value

// What the value of an outer package can be, beside an identity: a macro, a loop, a joiner.
type (
	// Object is a value with a type and attributes of its own.
	Object interface {
		TypeName() string
		// Attr returns an attribute. The bool is false for an AttributeError.
		Attr(r *Run, name string) (Value, bool, error)
	}
	// Callable is an object that can be called.
	Callable interface {
		Call(r *Run, a *Arguments) (Value, error)
	}
	// Sized is an object with a length, which is also its truth.
	Sized interface {
		Length(r *Run) (int64, error)
	}
	// Iterable is an object that can be iterated.
	Iterable interface {
		Iterate() *Iterator
	}
	// Printer is an object with a repr of its own.
	Printer interface {
		Repr(r *Run) (string, error)
	}
)
