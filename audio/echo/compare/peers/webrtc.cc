// Runs webrtc-audio-processing's echo canceller over raw 16 kHz mono recordings:
//
//     webrtc MIC PLAYED SUPPRESSED [moderate|high]
//
// The library has one output, with its suppressor; what its linear filter alone leaves can't be had. The extended filter
// and the search for the delay are on, nothing else that it can do.
#include <webrtc/common.h>
#include <webrtc/modules/audio_processing/include/audio_processing.h>
#include <webrtc/modules/interface/module_common_types.h>

#include <cstdio>
#include <cstring>
#include <ctime>

using namespace webrtc;

const int kRate = 16000, kFrame = 160;

int main(int argc, char** argv) {
	if (argc < 4) {
		fprintf(stderr, "usage: webrtc MIC PLAYED SUPPRESSED [moderate|high]\n");
		return 2;
	}
	FILE* f[3];
	for (int i = 0; i < 3; i++) {
		f[i] = fopen(argv[i + 1], i < 2 ? "rb" : "wb");
		if (!f[i]) {
			perror(argv[i + 1]);
			return 1;
		}
	}
	Config config;
	config.Set<ExtendedFilter>(new ExtendedFilter(true));
	config.Set<DelayAgnostic>(new DelayAgnostic(true));
	AudioProcessing* apm = AudioProcessing::Create(config);
	EchoCancellation* echo = apm->echo_cancellation();
	echo->enable_drift_compensation(false);
	echo->set_suppression_level(argc > 4 && !strcmp(argv[4], "high") ? EchoCancellation::kHighSuppression
	                                                                : EchoCancellation::kModerateSuppression);
	echo->Enable(true);

	AudioFrame mic, played;
	for (AudioFrame* a : {&mic, &played}) {
		a->sample_rate_hz_ = kRate;
		a->num_channels_ = 1;
		a->samples_per_channel_ = kFrame;
	}
	clock_t begin = clock();
	long frames = 0;
	while (fread(mic.data_, 2 * kFrame, 1, f[0]) == 1 && fread(played.data_, 2 * kFrame, 1, f[1]) == 1) {
		apm->ProcessReverseStream(&played);
		apm->set_stream_delay_ms(0);
		if (int err = apm->ProcessStream(&mic)) {
			fprintf(stderr, "webrtc: error %d\n", err);
			return 1;
		}
		fwrite(mic.data_, 2 * kFrame, 1, f[2]);
		frames++;
	}
	printf("%.0f\n", frames ? 2e9 * (clock() - begin) / CLOCKS_PER_SEC / frames : 0);  // ns for 20 ms
	if (fclose(f[2])) {
		perror(argv[3]);
		return 1;
	}
	delete apm;
}
