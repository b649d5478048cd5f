// What servers write when something is wrong. Matched in lower-cased text.

export const PHRASES = {
  safety:
    /flagged for possible cybersecurity risk|trusted access for cyber|violates (our|openai's) usage policies|your request was flagged by|prompt was flagged by our safety|responses cannot be generated due to safety|content_filter|responsibleaipolicyviolation|new_sensitive/,
  billing:
    /insufficient[ _](credits?|quota|balance|funds)|credit balance|credits? (have been )?exhausted|payment required|billing hard limit|exceeded your current quota|account is deactivated|plan does not include|out of extra usage|out of funds|not available on the free tier/,
  keyLimit: /key limit exceeded|spending limit/,
  usageLimit: /usage[ _]limit|quota|(?<!rate )(?<!rate_)limit (exceeded|reached)/,
  transient: /try again|retry|resets? at|resets? in|\bwait\b|window|periodic|requests remaining/,
  rate: /rate[ _-]?limit|too many requests|throttl|(requests|tokens) per minute|try again in|please retry after|resource_exhausted|resource has been exhausted|too many concurrent requests/,
  overloaded: /overloaded|(at|over) capacity/,
  overflow:
    /context (length|size|window)|maximum context|token limit|too many tokens|reduce the length|exceeds? the limit|prompt is too long|prompt exceeds max length|max_tokens|maximum number of tokens|max_model_len|prompt length|input is too long|maximum model length|truncating input|slot context|n_ctx_slot|max input token|input token|maximum allowed input length|context_length_exceeded|超过最大长度|上下文长度/,
  model:
    /is not a valid model|(invalid|unknown|unsupported) model|model[ _]not[ _]found|does not exist|no such model|no endpoints found that support tool use|model [^\n]{0,80}not found/,
  auth: /invalid (x-)?api[ _-]?key|incorrect api key|authentication|unauthorized|forbidden|invalid token|token (has )?(expired|been revoked)|token (is )?(expired|revoked)|access denied/,
  dataPolicy: /data policy|guardrail restrictions/,
  multimodalTool: /tool[a-z _.[\]0-9-]* content must be a string|content must be a string|text is not set/,
  image: /image exceeds|image (is )?too large|image dimensions exceed|dimensions exceed/,
  encrypted: /invalid_encrypted_content/,
  parameter:
    /(unknown|unsupported|unrecognized) (request )?(parameter|argument)|unsupported_parameter|unknown_parameter|is not supported with this model|unsupported value/,
  emptyContent: /messages must have non-empty content|invalid_request_body/,
  emptyResponse: /provider returned an empty response|empty response|empty_stream/,
  validation:
    /(unknown|unsupported|unrecognized) (request )?(parameter|argument)|invalid_request_error|request validation|validation error/,
  payload: /payload too large|request entity too large|request too large|request_too_large/,
  timeout: /timed? ?out|deadline exceeded/,
  certificate:
    /certificate[ _]verify failed|unable to (get local issuer|verify the first) certificate|unable_to_get_issuer_cert|unable_to_verify_leaf_signature|self[- _]signed[ _]cert|certificate has expired|cert_has_expired|cert_altname_invalid/,
  tlsAlert: /(ssl|tls)[a-z0-9_/ ]*alert|bad record mac|decryption failed or bad record/,
  disconnect:
    /server disconnected|peer closed|reset by peer|unexpected eof|incomplete chunked read|econnreset|und_err_socket|epipe|socket hang up|other side closed|\bterminated\b|premature close|stream_cut|connection was lost/,
  transport:
    /apitimeouterror|apiconnectionerror|timeouterror|etimedout|econnrefused|enotfound|eai_again|ehostunreach|enetunreach|und_err_[a-z_]*timeout|fetch failed|connection error|stale_stream/,
} as const;
