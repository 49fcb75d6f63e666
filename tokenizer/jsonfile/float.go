package jsonfile

import (
	"fmt"
	"math"
	"strconv"
	"sync"
)

// powersOfTen are the floats nearest to 1e0 to 1e308.
var powersOfTen = sync.OnceValue(func() *[309]float64 {
	var p [309]float64
	for i := range p {
		p[i], _ = strconv.ParseFloat("1e"+strconv.Itoa(i), 64)
	}
	return &p
})

// ParseScore returns the float that the reference reads, which is not always the nearest one: serde_json without its
// float_roundtrip feature rounds the digits to a float first and then scales it (f64_from_parts of de.rs, serde_json
// 1.0). The last bits decide between segmentations with otherwise equal scores. text is a number that Reader has
// read.
func ParseScore(text string) (float64, error) {
	digits := text
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	significand, exponent := uint64(0), 0
	full, point, float := false, false, false
	at := 0
	for ; at < len(digits); at++ {
		c := digits[at]
		if c == '.' {
			point, float = true, true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		d := uint64(c - '0')
		if full = full || significand > (math.MaxUint64-d)/10; full {
			// A digit that does not fit only scales the number if it is before the point. Once one does not fit, no later one is
			// used.
			if !point {
				exponent++
				float = true
			}
			continue
		}
		significand = significand*10 + d
		if point {
			exponent--
		}
	}
	if at < len(digits) { // e or E
		e, err := strconv.Atoi(digits[at+1:])
		if err != nil || e > 1<<20 || e < -1<<20 {
			if significand != 0 && digits[at+1] != '-' {
				return 0, fmt.Errorf("%s is out of range", text)
			}
			return 0, nil
		}
		exponent += e
		float = true
	}
	f := float64(significand)
	if float {
		for {
			if n := max(exponent, -exponent); n < len(powersOfTen()) {
				if exponent >= 0 {
					f *= powersOfTen()[n]
				} else {
					f /= powersOfTen()[n]
				}
				break
			}
			if f == 0 {
				break
			}
			if exponent >= 0 {
				f = math.Inf(1)
				break
			}
			f /= 1e308
			exponent += 308
		}
	}
	if math.IsInf(f, 0) {
		return 0, fmt.Errorf("%s is out of range", text)
	}
	if negative {
		f = -f
	}
	return f, nil
}
