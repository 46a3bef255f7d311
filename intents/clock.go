package intents

import "slices"

// A TimeOfDay is a time as it is said.
type TimeOfDay struct {
	Hour, Minute int  // of a day of 24 hours
	EitherHalf   bool // neither before nor after noon was said: seven may be 7 or 19 o'clock; Hour is 1 to 12
}

// timeOf is the time of day that words say: six thirty, quarter to seven in the evening, six oh five p m, eighteen
// thirty, noon. As with durations, words that have no meaning here are passed over.
func timeOf(words []string) TimeOfDay {
	var (
		numbers []int // the hour and the minutes, or the other way round
		to      = slices.Contains(words, "to")
		swapped = to || slices.Contains(words, "past") // minutes past or to an hour
		half    string                                 // am, pm, night
	)
	for i, w := range words {
		n, isNumber := digit(w)
		switch {
		case isNumber && n > 0 && n < 10 && i > 0 && joins(words[i-1], n, len(numbers) == 1 && !swapped):
			numbers[len(numbers)-1] += n
		case isNumber:
			numbers = append(numbers, n)
		case w == "quarter":
			numbers = append(numbers, 15)
		case w == "half":
			numbers = append(numbers, 30)
		case w == "noon", w == "midday":
			return TimeOfDay{Hour: 12}
		case w == "midnight":
			return TimeOfDay{}
		case w == "am", w == "morning", w == "m" && i > 0 && words[i-1] == "a":
			half = "am"
		case w == "pm", w == "afternoon", w == "evening", w == "m" && i > 0 && words[i-1] == "p":
			half = "pm"
		case w == "night", w == "tonight":
			half = "night"
		}
	}
	numbers = append(numbers, 0, 0)
	hour, minute := numbers[0], numbers[1]
	if swapped {
		hour, minute = minute, hour
	}
	if to {
		minute = (60 - minute) % 60
		if minute > 0 {
			hour = before(hour)
		}
	}
	t := TimeOfDay{Hour: hour % 24, Minute: minute % 60}
	switch {
	case hour == 0 || hour > 12:
	case half == "am", half == "night" && (hour < 5 || hour == 12):
		t.Hour = hour % 12
	case half != "":
		t.Hour = hour%12 + 12
	default:
		t.EitherHalf = true
	}
	return t
}

// joins tells whether a word of tens and n are one number. Of the hour, which comes first, only twenty one to twenty
// three are: twenty five is five past eight.
func joins(before string, n int, hour bool) bool {
	return slices.Contains(tens[2:], before) && (!hour || before == "twenty" && n < 4)
}

// before is the hour before, of a clock with 12 hours or with 24.
func before(hour int) int {
	switch hour {
	case 0:
		return 23
	case 1:
		return 12
	}
	return hour - 1
}
