package llmtest_test

import (
	"testing"

	"bellbird/llm"
	"bellbird/llm/llmtest"
)

const chatTurns = 50

func chat(t testing.TB, a api, way llmtest.Way) llmtest.Figures {
	t.Helper()
	server := a.serve(llmtest.Answer())
	defer server.Close()
	m, err := a.model(llm.Server{BaseURL: server.URL + a.path, Model: "test"})
	if err != nil {
		t.Fatal(err)
	}
	f, err := llmtest.Chat(t.Context(), m, way, chatTurns)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestCache holds the ghost rail to its purpose; BenchmarkCache tells the figures.
func TestCache(t *testing.T) {
	for _, a := range apis {
		rail, prompt := chat(t, a, llmtest.Rail), chat(t, a, llmtest.Prompt)
		t.Logf("%s: %.1f %% of the input from the cache, through the prompt %.1f %%; it costs %.0f %% of that",
			a.name, 100*rail.Share(), 100*prompt.Share(), 100*rail.Cost()/prompt.Cost())
		if rail.Share() < 0.9 || rail.Share() < prompt.Share() {
			t.Errorf("%s: %.3f of the input from the cache, through the prompt %.3f", a.name, rail.Share(), prompt.Share())
		}
	}
}

func BenchmarkCache(b *testing.B) {
	for _, a := range apis {
		for _, way := range []llmtest.Way{llmtest.Rail, llmtest.Prompt} {
			b.Run(a.name+"/"+[]string{"rail", "prompt"}[way], func(b *testing.B) {
				var f llmtest.Figures
				for b.Loop() {
					f = chat(b, a, way)
				}
				b.ReportMetric(100*f.Share(), "%cached")
				b.ReportMetric(f.Cost()/float64(f.Turns), "cost/turn")
				b.ReportMetric(float64(f.Input)/float64(f.Turns), "tokens/turn")
			})
		}
	}
}
