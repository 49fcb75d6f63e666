package ingest

import (
	"cmp"
	"slices"
)

// Range is a range of bytes of a blob, from Start up to but not including End.
type Range struct{ Start, End int64 }

// Len returns the number of bytes.
func (r Range) Len() int64 { return r.End - r.Start }

// ranges is a sorted list of ranges that neither overlap nor touch.
type ranges []Range

// add adds a range and merges it with those that it overlaps or touches.
func (rs ranges) add(r Range) ranges {
	if r.Start >= r.End {
		return rs
	}
	from, _ := slices.BinarySearchFunc(rs, r.Start, func(e Range, start int64) int { return cmp.Compare(e.End, start) })
	to := from
	for to < len(rs) && rs[to].Start <= r.End {
		r.Start, r.End = min(r.Start, rs[to].Start), max(r.End, rs[to].End)
		to++
	}
	return slices.Replace(rs, from, to, r)
}

// missing returns the parts of in that are not covered.
func (rs ranges) missing(in Range) []Range {
	var out []Range
	for _, r := range rs {
		if r.End <= in.Start {
			continue
		}
		if r.Start >= in.End {
			break
		}
		if in.Start < r.Start {
			out = append(out, Range{in.Start, r.Start})
		}
		in.Start = r.End
	}
	if in.Start < in.End {
		out = append(out, in)
	}
	return out
}

// within removes everything outside limit.
func (rs ranges) within(limit Range) ranges {
	var out ranges
	for _, r := range rs {
		out = out.add(Range{max(r.Start, limit.Start), min(r.End, limit.End)})
	}
	return out
}

// prefix returns the length of the range that starts at 0, or 0 if there is none.
func (rs ranges) prefix() int64 {
	if len(rs) == 0 || rs[0].Start > 0 {
		return 0
	}
	return rs[0].End
}

func (rs ranges) len() int64 {
	var n int64
	for _, r := range rs {
		n += r.Len()
	}
	return n
}
