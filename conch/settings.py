"""Django's settings; what a person can set comes from `conch.configuration`."""

from conch import configuration

BASE_DIR = configuration.BASE_DIR
CONCH_DATA = configuration.data_folder()
SECRET_KEY = configuration.secret_key(CONCH_DATA)
SECRET_KEY_FALLBACKS = configuration.env.list("CONCH_OLD_SECRET_KEYS", default=[])
DEBUG = configuration.flag("CONCH_DEBUG", default=False)

CONCH_HOST = configuration.env.str("CONCH_HOST", default="127.0.0.1")
CONCH_PORT = configuration.port("CONCH_PORT", default=8765)
CONCH_LOCAL_URL = configuration.http_url("CONCH_LOCAL_URL")
CONCH_LOCAL_KEY = configuration.bearer("CONCH_LOCAL_KEY")
CONCH_LOCAL_MODEL = configuration.env.str("CONCH_LOCAL_MODEL", default="")
CONCH_SIMULATED = configuration.flag("CONCH_SIMULATED", default=False)
CONCH_WORKER = configuration.flag("CONCH_WORKER", default=False)

ALLOWED_HOSTS = configuration.host_names("CONCH_ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
if CONCH_HOST not in {"127.0.0.1", "localhost", "::1", "0.0.0.0", "::"}:  # noqa: S104  compared, not bound
    ALLOWED_HOSTS = [*ALLOWED_HOSTS, CONCH_HOST]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "template_partials",
    "csp",
    "conch",
    "routing",
    "settings_ui",
]

MIDDLEWARE = [
    "conch.middleware.SecurityMiddleware",
    "conch.middleware.WhiteNoiseMiddleware",
    "conch.middleware.CSPMiddleware",
    "conch.middleware.SessionMiddleware",
    "conch.middleware.CommonMiddleware",
    "conch.middleware.NotAPage",
    "conch.middleware.CsrfViewMiddleware",
    "conch.middleware.AuthenticationMiddleware",
    "conch.middleware.SignInRequired",
    "conch.middleware.PersonTimeZone",
    "conch.middleware.MessageMiddleware",
    "conch.middleware.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "conch.urls"
ASGI_APPLICATION = "conch.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "conch.chat.context.shell",
            ],
            "builtins": ["template_partials.templatetags.partials"],
        },
    },
]

DATABASES = {"default": configuration.database(CONCH_DATA)}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "conch.Person"
LOGIN_URL = "signin"

USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = False
LANGUAGE_CODE = "en"

STATIC_URL = "static/"
STATIC_ROOT = CONCH_DATA / "static"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'none'"],
        "script-src": ["'self'"],
        "style-src": ["'self'"],
        "img-src": ["'self'"],
        "font-src": ["'self'"],
        "connect-src": ["'self'"],
        "form-action": ["'self'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
    },
}
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONCH_HTTPS = configuration.flag("CONCH_HTTPS", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if CONCH_HTTPS else None
# Cookies know no ports: the demonstration beside a real Conch must not sign its person out.
SESSION_COOKIE_NAME = "conch_demo_session" if CONCH_SIMULATED else "conch_session"
SESSION_COOKIE_AGE = 60 * 60 * 24 * 90
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = CONCH_HTTPS
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [f"https://{host}" for host in ALLOWED_HOSTS if CONCH_HTTPS and host != "*"]

# Limits on input (doors.md).
MESSAGE_CHARACTERS = 200_000
IMAGE_BYTES = 8 * 1024 * 1024
IMAGES_A_MESSAGE = 5
DATA_UPLOAD_MAX_MEMORY_SIZE = 56 * 1024 * 1024

CONCH_METRICS_TOKEN = configuration.env.str("CONCH_METRICS_TOKEN", default="")
CONCH_LOG = configuration.one_of("CONCH_LOG", ("text", "json"))
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "text": {"()": "conch.log.Scrubbed", "format": "%(asctime)s %(levelname)s %(name)s %(message)s"},
        "json": {"()": "conch.log.Json"},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": CONCH_LOG}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    # What a caller got wrong is told to the caller; only faults of ours are written down, and, for programs that read
    # logs, the end of every turn.
    "loggers": {
        "conch": {"level": "INFO"},
        "conch.turns": {"level": "INFO" if CONCH_LOG == "json" else "WARNING"},
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}
