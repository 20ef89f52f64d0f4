/* Many contexts in one call, for comparisons with Python; not part of an export. */
#include "contextgap_policy.c"
#ifndef CONTEXTGAP_DEFAULT_ARM /* in exports of earlier versions */
#define CONTEXTGAP_DEFAULT_ARM CONTEXTGAP_FALLBACK_ARM
#endif

int contextgap_batch_facts(int which);
void contextgap_batch_recommend(const contextgap_real *contexts, long count, int *arm, int *status);
void contextgap_batch_decide(const contextgap_real *contexts, long count, int *arm, int *status,
                             contextgap_real *mean, contextgap_real *width, contextgap_real *gap,
                             contextgap_real *certificate, const unsigned char *eligible);

int contextgap_batch_facts(int which)
{
    const int facts[5] = {CONTEXTGAP_ARMS, CONTEXTGAP_DIMENSION, (int)sizeof(contextgap_real),
                          CONTEXTGAP_HAS_WIDTHS, CONTEXTGAP_DEFAULT_ARM};
    return facts[which];
}

void contextgap_batch_recommend(const contextgap_real *contexts, long count, int *arm, int *status)
{
    for (long i = 0; i < count; i++) {
        status[i] = contextgap_recommend_checked(&contexts[i * CONTEXTGAP_DIMENSION], &arm[i]);
    }
}

void contextgap_batch_decide(const contextgap_real *contexts, long count, int *arm, int *status,
                             contextgap_real *mean, contextgap_real *width, contextgap_real *gap,
                             contextgap_real *certificate, const unsigned char *eligible)
{
    for (long i = 0; i < count; i++) {
        contextgap_decision decision;
        const contextgap_real *context = &contexts[i * CONTEXTGAP_DIMENSION];
#ifdef CONTEXTGAP_HAS_ELIGIBLE
        if (eligible) {
            status[i] =
                contextgap_decide_among(context, &eligible[i * CONTEXTGAP_ARMS], &decision);
        } else
#endif
        {
            (void)eligible;
            status[i] = contextgap_decide(context, &decision);
        }
        arm[i] = decision.arm;
        for (int a = 0; a < CONTEXTGAP_ARMS; a++) {
            mean[i * CONTEXTGAP_ARMS + a] = decision.mean[a];
#if CONTEXTGAP_HAS_WIDTHS
            width[i * CONTEXTGAP_ARMS + a] = decision.width[a];
            gap[i * CONTEXTGAP_ARMS + a] = decision.gap[a];
        }
        certificate[i] = decision.certificate;
#else
        }
        (void)width;
        (void)gap;
        (void)certificate;
#endif
    }
}

#ifdef CONTEXTGAP_WATCH_FAILURE
unsigned long contextgap_batch_watch(const contextgap_real *contexts, long count,
                                     double *evidence);

/* Stores the evidence after each row, and returns the row of the alarm. */
unsigned long contextgap_batch_watch(const contextgap_real *contexts, long count, double *evidence)
{
    contextgap_watch watch;
    contextgap_watch_start(&watch);
    for (long i = 0; i < count; i++) {
        contextgap_decision decision;
        const contextgap_real *context = &contexts[i * CONTEXTGAP_DIMENSION];
        (void)contextgap_decide(context, &decision);
        (void)contextgap_watch_see(&watch, context, NULL, &decision);
        evidence[i] = contextgap_watch_evidence(&watch);
    }
    return (unsigned long)watch.alarm;
}
#endif
