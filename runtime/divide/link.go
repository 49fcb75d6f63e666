package divide

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// units are bits per second.
var units = map[string]float64{"gbit": 1e9, "mbit": 1e6}

// ParseLink reads a rate, and after a slash a latency: 1Gbit/100us. Without a latency it is that of [usualLink].
func ParseLink(text string) (Link, error) {
	link := usualLink
	rate, latency, given := strings.Cut(text, "/")
	number := strings.TrimRight(rate, "GMbitgIT")
	n, err := strconv.ParseFloat(number, 64)
	unit, known := units[strings.ToLower(rate[len(number):])]
	if err != nil || !known || !(n > 0) || n > 1e6 {
		return link, fmt.Errorf("%q is not a rate such as 10Gbit or 100Mbit, with a latency such as 1Gbit/100us", text)
	}
	link.Bandwidth = n * unit / 8
	if given {
		d, err := time.ParseDuration(latency)
		if err != nil || d < 0 || d > time.Minute {
			return link, fmt.Errorf("%q has no latency such as 100us after its rate", text)
		}
		link.Latency = d.Seconds()
	}
	return link, nil
}
