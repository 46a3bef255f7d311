/* Runs speexdsp's echo canceller, and its preprocessor as residual echo suppressor, over raw 16 kHz mono recordings:
 *
 *     speex MIC PLAYED LINEAR SUPPRESSED
 *
 * Frames are 20 ms and the filter is 200 ms long, as the appliance's. The suppressor does nothing without the noise
 * suppression, so that is on, which makes its figures look better than its echo suppression alone. */
#include <speex/speex_echo.h>
#include <speex/speex_preprocess.h>
#include <stdio.h>
#include <time.h>

enum { RATE = 16000, FRAME = 320, TAIL = 3200 };

int main(int argc, char **argv) {
	if (argc != 5) {
		fprintf(stderr, "usage: speex MIC PLAYED LINEAR SUPPRESSED\n");
		return 2;
	}
	FILE *f[4];
	for (int i = 0; i < 4; i++) {
		f[i] = fopen(argv[i + 1], i < 2 ? "rb" : "wb");
		if (!f[i]) {
			perror(argv[i + 1]);
			return 1;
		}
	}
	int rate = RATE, no = 0;
	SpeexEchoState *echo = speex_echo_state_init(FRAME, TAIL);
	SpeexPreprocessState *rest = speex_preprocess_state_init(FRAME, RATE);
	speex_echo_ctl(echo, SPEEX_ECHO_SET_SAMPLING_RATE, &rate);
	speex_preprocess_ctl(rest, SPEEX_PREPROCESS_SET_ECHO_STATE, echo);
	speex_preprocess_ctl(rest, SPEEX_PREPROCESS_SET_AGC, &no);

	spx_int16_t mic[FRAME], played[FRAME], out[FRAME];
	clock_t begin = clock();
	long frames = 0;
	while (fread(mic, sizeof mic, 1, f[0]) == 1 && fread(played, sizeof played, 1, f[1]) == 1) {
		speex_echo_cancellation(echo, mic, played, out);
		fwrite(out, sizeof out, 1, f[2]);
		speex_preprocess_run(rest, out);
		fwrite(out, sizeof out, 1, f[3]);
		frames++;
	}
	printf("%.0f\n", frames ? 1e9 * (clock() - begin) / CLOCKS_PER_SEC / frames : 0); /* ns a frame */
	for (int i = 2; i < 4; i++)
		if (fclose(f[i])) {
			perror(argv[i + 1]);
			return 1;
		}
	return 0;
}
