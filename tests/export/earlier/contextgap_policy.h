/* A frozen decision rule, exported by contextgap 0.2.0. Generated; do not edit.
 *
 * Rule: HighestMean, 2 arms, 6 observations in the tables, kernel
 * Gaussian(bandwidth=0.5)
 *
 * Context: 1 numbers, in this order:
 *   [0] context[0]
 *
 * Cost of one call of contextgap_recommend, the same for every finite context:
 *   multiply-adds 20
 *   (20 additions or subtractions, 18 multiplications)
 *   divisions 0, exp calls 6, sqrt calls 0, sin calls 0
 *
 * Memory:
 *   ROM 151 bytes of constants, of which 96 are numbers and the rest
 *       labels, names and indices, with 8-byte pointers and size_t; code comes on top
 *   RAM 32 bytes of arrays on the stack during a call of contextgap_decide, of which
 *       contextgap_decision is the caller's; nothing is static, nothing is allocated
 *
 * All functions are re-entrant. Needs C99 and math.h; link with -lm where that is separate.
 * Do not compile with -ffast-math: it removes the checks for numbers that are not finite.
 * Check a target with contextgap_selftest.c:
 *   cc -std=c99 -O2 contextgap_policy.c contextgap_selftest.c -lm -o selftest && ./selftest
 *
 * Computing in double moves means by at most 1.1e-16 at 1 contexts of the self-test, emulated;
 * two arms whose scores differ by less than 1.2e-09 are a near tie.
 */
#ifndef CONTEXTGAP_POLICY_H
#define CONTEXTGAP_POLICY_H

#ifdef __cplusplus
extern "C" {
#endif

typedef double contextgap_real;

#define CONTEXTGAP_EXPORT_ID 0x50321e2bUL /* the three files belong together */
#define CONTEXTGAP_ARMS 2
#define CONTEXTGAP_DIMENSION 1
#define CONTEXTGAP_HAS_WIDTHS 0

/* The arm for contexts at which nothing can be computed: the one with the highest mean,
 * averaged over all observed contexts. */
#define CONTEXTGAP_FALLBACK_ARM 1

/* What contextgap_recommend_checked and contextgap_decide return. */
#define CONTEXTGAP_OK 0
#define CONTEXTGAP_INPUT_NOT_FINITE 1  /* the context has an infinity or a NaN */
#define CONTEXTGAP_RESULT_NOT_FINITE 2 /* a mean, a width or a gap overflowed */

/* The arms' labels and the names of the context's numbers, in UTF-8. */
extern const char *const contextgap_labels[CONTEXTGAP_ARMS];
extern const char *const contextgap_columns[CONTEXTGAP_DIMENSION];

typedef struct {
    /* The arm to deploy. */
    int arm;
    /* Expected rewards. */
    contextgap_real mean[CONTEXTGAP_ARMS];
} contextgap_decision;

/* Return the index of the arm to deploy; CONTEXTGAP_FALLBACK_ARM where nothing can be computed. */
int contextgap_recommend(const contextgap_real *context);

/* The same, stored in *arm; returns CONTEXTGAP_OK or why the arm is
 * CONTEXTGAP_FALLBACK_ARM. */
int contextgap_recommend_checked(const contextgap_real *context, int *arm);

/* The same arm with what is believed about all arms. If the result is not CONTEXTGAP_OK, the arm
 * is CONTEXTGAP_FALLBACK_ARM, means are 0. */
int contextgap_decide(const contextgap_real *context, contextgap_decision *decision);

#ifdef __cplusplus
}
#endif

#endif
