package divide

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Link is a connection between machines.
type Link struct {
	Bandwidth float64 // bytes per second
	Latency   float64 // seconds, one way
}

// usualLink is assumed where no link is given: 10 Gbit/s.
var usualLink = Link{Bandwidth: 1.25e9, Latency: 30e-6}

// units are bits per second.
var units = map[string]float64{"gbit": 1e9, "mbit": 1e6}

// ParseLink reads a rate, and after a slash a latency: 1Gbit/100us. The latency is [usualLink]'s by default.
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

// FreeLink is a link that costs nothing.
var FreeLink = Link{Bandwidth: math.Inf(1)}

// Sum returns the time to add arrays of a size over ranks on the ring. rounded is the size of the result.
func (l Link) Sum(ranks int, bytes, rounded float64) float64 {
	steps, _ := ringSteps(ranks, bytes, rounded)
	return steps*ringStep + l.SumOver(ranks, bytes, rounded)
}

// gathered returns the size up to which ranks pass on whole arrays instead of parts of sums, as the bridge does
// (kGathered in ring.cc).
func gathered(ranks int) float64 {
	if ranks == 2 {
		return 128 << 10
	}
	return 16 << 10
}

// ringSteps returns how many messages of a sum follow one another, and the bytes of all of them.
func ringSteps(ranks int, bytes, rounded float64) (steps, total float64) {
	others := float64(ranks - 1)
	if bytes <= gathered(ranks) {
		return others, others * bytes
	}
	return 2 * others, others * (bytes + rounded) / float64(ranks)
}

// SumOver returns the part of Sum that the link takes.
func (l Link) SumOver(ranks int, bytes, rounded float64) float64 {
	steps, total := ringSteps(ranks, bytes, rounded)
	return steps*l.Latency + total/l.Bandwidth
}

// Message returns the time of a message from rank to rank.
func (l Link) Message(bytes float64) float64 { return messageCost + l.Latency + bytes/l.Bandwidth }
