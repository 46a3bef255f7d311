package intents_test

import (
	"testing"

	"bellbird/intents"
)

func TestTimesOfDay(t *testing.T) {
	s, err := intents.Parse("t", "[at]\n~at {time:clock}\n~<clock:time> = <any> [<any>] [<any>]\n")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]intents.TimeOfDay{
		"seven":                         {7, 0, true},
		"twelve":                        {12, 0, true},
		"twelve a m":                    {0, 0, false},
		"twelve p m":                    {12, 0, false},
		"7pm":                           {19, 0, false},
		"7 p.m.":                        {19, 0, false},
		"seven in the morning":          {7, 0, false},
		"seven in the evening":          {19, 0, false},
		"eleven at night":               {23, 0, false},
		"one at night":                  {1, 0, false},
		"twelve at night":               {0, 0, false},
		"six thirty five":               {6, 35, true},
		"six oh five":                   {6, 5, true},
		"6:05":                          {6, 5, true},
		"06:30":                         {6, 30, true},
		"18:30":                         {18, 30, false},
		"eighteen thirty":               {18, 30, false},
		"twenty one fifteen":            {21, 15, false},
		"twenty twenty five":            {20, 25, false},
		"0:00":                          {0, 0, false},
		"twenty three fifty nine":       {23, 59, false},
		"half past six":                 {6, 30, true},
		"a quarter past six p m":        {18, 15, false},
		"quarter to one":                {12, 45, true},
		"quarter to twelve":             {11, 45, true},
		"ten to seven":                  {6, 50, true},
		"twenty five past six":          {6, 25, true},
		"twenty five minutes to six":    {5, 35, true},
		"ten to one in the morning":     {0, 50, false},
		"ten to one in the afternoon":   {12, 50, false},
		"quarter to twelve at night":    {23, 45, false},
		"noon":                          {12, 0, false},
		"midnight":                      {0, 0, false},
		"seven o'clock in the evening":  {19, 0, false},
		"something without any meaning": {0, 0, false},
	} {
		if m, ok := s.Match("at " + text); !ok || m.Slots["time"].Time != want {
			t.Errorf("%q is %+v, want %+v", text, m.Slots["time"].Time, want)
		}
	}
}
